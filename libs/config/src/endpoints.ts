import { createHash } from 'node:crypto';
import { BadValue, optional, port, variable } from './variable.js';

/** The same variables for the runtime, which serves sources' endpoints, and the catalog, which shows their URLs. */
export const endpointVariables = {
  endpointsPort: port('SLUICE_ENDPOINTS_PORT', { fallback: 3001, description: 'Port of the HTTP endpoints of sources.' }),
  endpointsBaseUrl: optional(
    variable('SLUICE_ENDPOINTS_URL', {
      description:
        'URL at which the outside reaches the endpoints of sources; default: http://localhost with the port above; `npm start` uses the address on which it listens. With a wildcard, such as ' +
        '`https://*.hooks.example.com`, each source has its own host name, and its component may set cookies.',
      parse: (value) => {
        if (!/^https?:\/\/(\*\.)?[^/*]+(\/[^*]*)?$/.test(value))
          throw new BadValue('must be an http or https URL; only its first label may be *');
        return value.replace(/\/+$/, '');
      },
    }),
  ),
};

/** The base of all endpoint URLs; see `endpointUrl`. */
export const endpointsUrlOf = (config: { endpointsPort: number; endpointsBaseUrl: string | undefined }): string =>
  config.endpointsBaseUrl ?? `http://localhost:${config.endpointsPort}`;

const WILDCARD = '://*.';
const LABEL_LENGTH = 20;

/** The URL of the endpoint with this key. */
export const endpointUrl = (endpointsUrl: string, key: string): string =>
  `${endpointsUrl.replace(WILDCARD, `://${endpointLabel(key)}.`)}/${key}`;

/** Whether each source has its own host name. */
export const hasOwnHosts = (endpointsUrl: string): boolean => endpointsUrl.includes(WILDCARD);

/** The first label of a source's own host name. Host names are visible in DNS and TLS, so it does not reveal the key. */
export const endpointLabel = (key: string): string => createHash('sha256').update(`endpoint ${key}`).digest('hex').slice(0, LABEL_LENGTH);
