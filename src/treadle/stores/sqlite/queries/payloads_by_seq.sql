-- Long payloads, a row each, since together they could be more than SQLite lets one value be.
SELECT seq, payload FROM treadle_jobs WHERE seq IN (SELECT value FROM json_each(:seqs))
