"""The functions service: functions in any language, called over HTTP as jobs, with cron and dead letters (F)."""
