-- Documents of all namespaces from (:namespace, :key) on, or beyond it if :beyond is 1, in order, at most :limit, expired ones too.
SELECT namespace, key, value, revision, expires_at FROM treadle_documents
WHERE (namespace, key) >= (:namespace, :key) AND NOT (:beyond AND namespace = :namespace AND key = :key)
ORDER BY namespace, key
LIMIT :limit
