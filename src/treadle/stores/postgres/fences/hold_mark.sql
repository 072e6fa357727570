-- Keeps the mark as it is for the rest of the transaction: whoever changes it keeps writers of jobs out.
lock table treadle.jobs in row exclusive mode;
