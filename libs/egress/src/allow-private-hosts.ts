import { BadValue, variable } from '#config';
import { AllowedHosts } from './allowed-hosts.js';

/** The same variable for every service that connects to users' hosts. */
export const allowPrivateHosts = variable('SLUICE_ALLOW_PRIVATE_HOSTS', {
  fallback: '',
  description:
    'Private hosts that webhooks and components may call: addresses, networks (CIDR) and names, each optionally with `:port` ' +
    '(`127.0.0.1:8080`, `localhost:*`), separated by commas. `npm start` sets it to the loopback addresses. The stores and services of Sluice ' +
    'stay out of reach.',
  parse: (value) => {
    try {
      new AllowedHosts(value);
      return value;
    } catch (error) {
      throw new BadValue(`cannot be used: ${(error as Error).message}`);
    }
  },
});
