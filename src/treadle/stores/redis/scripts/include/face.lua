-- Queues of the functions service and of plugins: they are claimed from only where they are named (E1).
--@include arguments
local function owned_by_a_face(queue)
  return queue == '$FUNCTIONS_QUEUE' or queue:sub(1, #'$PLUGIN_QUEUE_PREFIX') == '$PLUGIN_QUEUE_PREFIX'
end
