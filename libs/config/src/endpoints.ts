import { BadValue, optional, port, variable } from './variable.js';

/** The same variables for the runtime, which serves sources' endpoints, and the catalog, which shows their URLs. */
export const endpointVariables = {
  endpointsPort: port('SLUICE_ENDPOINTS_PORT', { fallback: 3001, description: 'Port of the HTTP endpoints of sources.' }),
  endpointsBaseUrl: optional(
    variable('SLUICE_ENDPOINTS_URL', {
      description: 'URL at which the outside reaches the endpoints of sources; default: http://localhost with the port above.',
      parse: (value) => {
        if (!/^https?:\/\/[^/]+/.test(value)) throw new BadValue('must be an http or https URL');
        return value.replace(/\/+$/, '');
      },
    }),
  ),
};

/** Every `endpoint_url` begins with it. */
export const endpointsUrlOf = (config: { endpointsPort: number; endpointsBaseUrl: string | undefined }): string =>
  config.endpointsBaseUrl ?? `http://localhost:${config.endpointsPort}`;
