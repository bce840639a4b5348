export { AddressGuard, type AddressGuardOptions, type Resolution, type ResolvedAddress } from './address-guard.js';
export { EgressRefused } from './address-guard.js';
export { guardedAgent, guardedConnector, MAX_IDLE_MS, MAX_INFORMATIONAL, tcpSocket } from './guarded-agent.js';
export { allowPrivateHosts } from './allowed-hosts.js';
export { withoutBrackets } from './ip-text.js';
export { OwnHosts, ownHosts, protectedHosts } from './own-hosts.js';
