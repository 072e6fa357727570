-- Schema version 3: the mark of a move between stores.

-- What this store knows of the latest move that it took part in, as JSON; no row where there was none (S13). While the mark
-- closes the store, triggers refuse what it forbids (fences/), and `open` is 1 only within a transaction of the move itself.
CREATE TABLE treadle_move (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    mark TEXT NOT NULL,
    open INTEGER NOT NULL DEFAULT 0
) STRICT;
