import { Config, integer } from '#config';

/** The limits of a service that responds to HTTP requests of users. */
export class HttpServerConfig extends Config({
  maxConnections: integer('SLUICE_MAX_CONNECTIONS', {
    fallback: 20_000,
    min: 10,
    description:
      'HTTP connections that each gateway has open at a time, and each runtime for endpoints; never more than three quarters of the file descriptors ' +
      'that the process may have. One address can have half of them. Further ones are closed at once.',
  }),
}) {}
