"""The stores: the only SQL, the only Lua, the only database drivers."""
