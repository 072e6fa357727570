-- The document, unless it has expired at :now: value, revision, expires_at.
SELECT value, revision, expires_at FROM treadle_documents
WHERE namespace = :namespace AND key = :key AND (expires_at IS NULL OR expires_at > :now)
