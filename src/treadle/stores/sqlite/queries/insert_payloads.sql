-- Store long payloads. The row of parameters is repeated, one for each job.
INSERT INTO treadle_payloads (job, payload)
VALUES (?, ?)
