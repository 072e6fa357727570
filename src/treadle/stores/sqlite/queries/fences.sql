-- The names of the triggers that stand.
SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'treadle_fence_%'
