-- Included, not run by itself: the columns of the schedule s as schedules.py takes them.
s.name, s.expression, s.tz, s.seconds, s.job, s.next_at, s.last_at, s.paused, s.revision
