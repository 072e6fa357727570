-- How much there is beside jobs. Keys: the tag. Arguments: none. Result: how many intervals, schedules and documents there
-- are, expired ones too; the namespaces of the documents.
--@include arguments
local documents, namespaces = 0, redis.call('SMEMBERS', K .. ':namespaces')
for i = 1, #namespaces do documents = documents + redis.call('HLEN', K .. ':documents:' .. namespaces[i]) end
return {redis.call('HLEN', K .. ':intervals'), redis.call('HLEN', K .. ':schedules'), documents, namespaces}
