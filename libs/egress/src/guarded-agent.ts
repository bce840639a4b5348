import { isIP } from 'node:net';
import { Agent, buildConnector } from 'undici';
import type { AddressGuard, ResolvedAddress } from './address-guard.js';

export type GuardedConnectorOptions = buildConnector.BuildOptions;

export interface GuardedAgentOptions extends Omit<Agent.Options, 'connect'> {
  /** The options of undici's connector: `timeout`, `ca`, `rejectUnauthorized`, … */
  connect?: GuardedConnectorOptions;
}

/**
 * An undici agent that connects only to addresses that the guard allows. It checks once per connection; a reused connection is not checked again.
 * A refusal rejects the request with `EgressRefused`. HTTP/1.1, unless `connect.allowH2` is set.
 */
export function guardedAgent(guard: AddressGuard, options: GuardedAgentOptions = {}): Agent {
  const { connect, ...rest } = options;
  return new Agent({ ...rest, connect: guardedConnector(guard, connect) });
}

/** An undici connector that calls the guard and dials the returned addresses one after another. TLS still checks the host name. */
export function guardedConnector(guard: AddressGuard, options: GuardedConnectorOptions = {}): buildConnector.connector {
  const dial = buildConnector({ allowH2: false, ...options });
  return (target, callback) => {
    const port = Number(target.port) || (target.protocol === 'https:' ? 443 : 80);
    const name = target.hostname.replace(/^\[(.*)\]$/, '$1');
    // For a plain connection, the server name would only make undici resolve the address again
    const servername = target.protocol !== 'https:' || isIP(name) ? undefined : (target.servername ?? name);

    const dialNext = ([next, ...others]: ResolvedAddress[]): void => {
      dial({ ...target, hostname: next!.address, servername }, (...[error, socket]) => {
        if (error === null) callback(null, socket);
        else if (others.length > 0 && isUnreachable(error)) dialNext(others);
        else callback(error, null);
      });
    };
    guard.resolve(name, port).then(
      ({ all }) => dialNext(all),
      (error: Error) => callback(error, null),
    );
  };
}

/** Only failures that are immediate: trying another address after a timeout would multiply the caller's limit. */
function isUnreachable(error: Error): boolean {
  return ['ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'ECONNREFUSED'].includes((error as NodeJS.ErrnoException).code ?? '');
}
