-- The states as a record and as the names of keys have them.
local NAME_OF_STATE = {p = 'pending', r = 'running', d = 'done', x = 'dead'}
