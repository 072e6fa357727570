-- Very long payloads, a row each, since together they could be more than SQLite lets one value be.
SELECT job, payload FROM treadle_payloads WHERE job IN (SELECT value FROM json_each(:seqs))
