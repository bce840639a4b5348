/**
 * SQL: whether a lease until this time is in force. Leases are shorter than three minutes, so one that ends in more than five was taken while the clock of the
 * database was ahead: it counts as none, because its replica may have been killed and would hold it for as long as the clock was ahead. The two minutes are
 * for statements that began before the lease was taken, and for a clock that is set back a little.
 */
export const isLeased = (until: string): string => `(${until} > now() AND ${until} < now() + interval '5 minutes')`;
