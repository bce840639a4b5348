/**
 * Why a connection was refused: `EACCES` the address or port is not allowed, `ENOTFOUND` the name is unknown, `ETIMEDOUT` the name server did not
 * respond, `EPROTO` the target is not a host and port.
 */
export type EgressRefusedCode = 'EACCES' | 'ENOTFOUND' | 'ETIMEDOUT' | 'EPROTO';

/**
 * Thrown instead of connecting. The message is for the user who wrote the URL: it repeats their text and never reveals the address of
 * a name, which would let them map our network.
 */
export class EgressRefused extends Error {
  override readonly name = 'EgressRefused';

  constructor(
    readonly code: EgressRefusedCode,
    message: string,
  ) {
    super(message);
  }
}
