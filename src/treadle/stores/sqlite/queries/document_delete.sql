-- Delete a document.
DELETE FROM treadle_documents WHERE namespace = :namespace AND key = :key
