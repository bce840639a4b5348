/**
 * Why a call did not leave: `EACCES` the address or port is not allowed, `ENOTFOUND` the name is unknown, `ETIMEDOUT` the name server did not
 * answer, `EPROTO` what was asked for is no host and port.
 */
export type EgressRefusedCode = 'EACCES' | 'ENOTFOUND' | 'ETIMEDOUT' | 'EPROTO';

/**
 * Thrown instead of connecting. The message is written for the user whose URL it was: it repeats what he wrote and never says what address a
 * name resolved to, or he could map the network that we stand in.
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
