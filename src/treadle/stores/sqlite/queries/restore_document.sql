-- Store a document of another store as it was, with its revision, unless one is in its place.
INSERT INTO treadle_documents (namespace, key, value, revision, expires_at)
VALUES (:namespace, :key, :value, :revision, :expires_at)
ON CONFLICT (namespace, key) DO NOTHING
