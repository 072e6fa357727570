-- Write a document over whatever was there.
INSERT INTO treadle_documents (namespace, key, value, revision, expires_at)
VALUES (:namespace, :key, :value, :revision, :expires_at)
ON CONFLICT (namespace, key) DO UPDATE
SET value = excluded.value, revision = excluded.revision, expires_at = excluded.expires_at
