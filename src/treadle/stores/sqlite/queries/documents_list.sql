-- Documents with keys from :start on, and below :stop unless that is null: key, value, revision, expires_at.
-- Ranges over the primary key, which is in code-point order; LIKE would be neither exact nor case-sensitive.
SELECT key, value, revision, expires_at FROM treadle_documents
WHERE namespace = :namespace AND key >= :start AND (:stop IS NULL OR key < :stop)
    AND (expires_at IS NULL OR expires_at > :now)
ORDER BY key
LIMIT :limit
