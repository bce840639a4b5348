/**
 * SQLSTATEs of failures that pass: a connection was lost (08), two transactions conflicted (40), a resource is used up (53), the server is restarting or
 * ended the session (57P), it cancelled a statement that took too long (57014), the system failed to read or write a file (58), the server ended a
 * transaction that was idle or took too long (25P03, 25P04), it is read-only for now, such as after a failover (25006), or a lock was taken (55P03). And
 * errors of a connection.
 */
const TRANSIENT = /^(08|40|53|57P|57014|58|25006|25P03|25P04|55P03|ECONN|EPIPE|EPROTO|ETIMEDOUT|EHOST|ENET|ENOBUFS)/;

/**
 * System calls that open a connection. Whatever the code of their failure, such as that the process has no more files (EMFILE) or ports (EADDRNOTAVAIL), or that
 * a firewall is busy (EPERM), it is not a bug.
 */
const CONNECTING = /^(connect|getaddrinfo)$/;

/**
 * Codes of refusals that last until the operator changes a password, a permission, a certificate or a name. A server that was running well until then is
 * being changed, such as by the rotation of its passwords or by a failover.
 */
const REFUSED = /^(28|3D000|42501)/;
const REFUSED_CERTIFICATE = /^(ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/;

const isRefused = (code: string): boolean => REFUSED.test(code) || REFUSED_CERTIFICATE.test(code);

/** The last one is TypeORM's, for a statement or a commit after its connection was lost. */
const LOST_CONNECTION =
  /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Query runner already released/;

/** Whether a retry can help: the server is down or restarting, refuses the login, its disk is full, or two transactions conflicted. */
export function isTransient(error: unknown): boolean {
  // of a connection to a host with several addresses: one for each
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.some(isTransient);
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : '';
  const { syscall = '' } = (error ?? {}) as { syscall?: string };
  return TRANSIENT.test(code) || CONNECTING.test(syscall) || isRefused(code) || LOST_CONNECTION.test(message);
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}

/**
 * Whether a prepared statement with `*` was prepared before a migration of the next version added a column. Its connection cannot run it again; another one
 * can.
 */
export function isOutdatedPlan(error: unknown): boolean {
  // the message is in the language of the server
  const { code, routine } = (error ?? {}) as { code?: unknown; routine?: unknown };
  return code === '0A000' && routine === 'RevalidateCachedQuery';
}

/** The cause of a transient error, for users. */
export function outageOf(error: unknown): string {
  const code = codeOf(error);
  if (code === DISK_FULL) return 'the disk of the database is full';
  return isRefused(code) ? 'the database refuses access' : 'the database does not respond';
}

/** Whether the data itself is the cause, so that a retry never helps: a value, a constraint, a limit. */
export function isOfData(error: unknown): boolean {
  const code = codeOf(error);
  return code ? /^(22|23|54)/.test(code) : error instanceof RangeError || error instanceof TypeError;
}

export const UNIQUE_VIOLATION = '23505';
export const FOREIGN_KEY_VIOLATION = '23503';
/** A lock was not available within `lock_timeout`. */
export const LOCK_NOT_AVAILABLE = '55P03';
const DISK_FULL = '53100';

const CERTIFICATE = /certificate|Hostname\/IP|SSL|TLS/i;

/**
 * One line that names the cause of a failed connection that a retry does not cure: credentials, permissions, certificates. undefined for any
 * other failure, such as a server that is down.
 */
export function explainDatabaseError(error: unknown): string | undefined {
  const { code = '', message = '', syscall } = error as { code?: string; message?: string; syscall?: string };
  if (['28P01', '28000'].includes(code))
    return (
      `PostgreSQL refuses the login: ${message}. Check DATABASE_URL and DATABASE_PASSWORD; with Compose POSTGRES_PASSWORD, which does not change ` +
      'the password of an existing database: see docs/operations/compose.md.'
    );
  if (code === '42501') return `PostgreSQL denies access: ${message}. The user of DATABASE_URL lacks a permission.`;
  if (code === '42P07')
    return `PostgreSQL has tables that no migration of this version made: ${message}. \`sluice migrate\` needs an empty database, or its own.`;
  if (code === '3D000') return `PostgreSQL has no such database: ${message}. Check DATABASE_URL.`;
  if (/password must be a string|client password|SASL/i.test(message))
    return `The login to PostgreSQL fails: ${message}. Check DATABASE_URL and DATABASE_PASSWORD.`;
  if (CERTIFICATE.test(message) || REFUSED_CERTIFICATE.test(code))
    return `The TLS connection to PostgreSQL fails: ${message}. Check sslmode and sslrootcert in DATABASE_URL.`;
  if (code === 'ENOENT' && syscall === 'open') return `A file named in DATABASE_URL cannot be read: ${message}.`;
  return undefined;
}
