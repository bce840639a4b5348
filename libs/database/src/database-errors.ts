const CERTIFICATE = /certificate|Hostname\/IP|SSL|TLS/i;

/**
 * One line that names the cause of a failed connection that a retry does not cure: credentials, permissions, certificates. undefined for any
 * other failure, such as a server that is down.
 */
export function explainDatabaseError(error: unknown): string | undefined {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  if (['28P01', '28000'].includes(code)) return `PostgreSQL refuses the login: ${message}. Check DATABASE_URL and DATABASE_PASSWORD.`;
  if (code === '42501') return `PostgreSQL denies access: ${message}. The user of DATABASE_URL lacks a permission.`;
  if (code === '42P07')
    return `PostgreSQL has tables that no migration of this version made: ${message}. \`sluice migrate\` needs an empty database, or its own.`;
  if (code === '3D000') return `PostgreSQL has no such database: ${message}. Check DATABASE_URL.`;
  if (/password must be a string|client password|SASL/i.test(message))
    return `The login to PostgreSQL fails: ${message}. Check DATABASE_URL and DATABASE_PASSWORD.`;
  if (CERTIFICATE.test(message) || /^(ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code))
    return `The TLS connection to PostgreSQL fails: ${message}. Check sslmode and sslrootcert in DATABASE_URL.`;
  if (code === 'ENOENT') return `A file named in DATABASE_URL cannot be read: ${message}.`;
  return undefined;
}
