-- Remove some documents that have expired at :now, in passing.
DELETE FROM treadle_documents
WHERE (namespace, key) IN (
    SELECT namespace, key FROM treadle_documents INDEXED BY treadle_documents_expiry WHERE expires_at <= :now LIMIT 100
)
