export { AddressGuard, type AddressGuardOptions, type Resolution, type ResolvedAddress } from './address-guard.js';
export { EgressRefused, type EgressRefusedCode } from './address-guard.js';
export {
  guardedAgent,
  guardedConnector,
  type GuardedAgentOptions,
  type GuardedConnectorOptions,
  MAX_IDLE_MS,
  MAX_INFORMATIONAL,
  ResponseTooLong,
  tcpSocket,
} from './guarded-agent.js';
export { isPublicAddress } from './public-address.js';
export { allowPrivateHosts } from './allowed-hosts.js';
export { OwnHosts, ownHosts, protectedHosts, type OwnHost } from './own-hosts.js';
