import { Config, endpointsUrlOf, endpointVariables, integer } from '#config';
import { maxCodeBytes } from '#contracts';
import { allowPrivateHosts, protectedHosts } from '#egress';
import { SecretsConfig } from '#secrets';

/** The catalog's part of the configuration. */
export class CatalogConfig extends Config({
  ...endpointVariables,
  minIntervalSeconds: integer('SLUICE_MIN_INTERVAL_SECONDS', {
    fallback: 1,
    min: 1,
    description: 'Shortest interval of a timer, in seconds.',
  }),
  maxCodeBytes,
  maxStoredCodeBytes: integer('SLUICE_MAX_STORED_CODE_BYTES', {
    fallback: 1024 ** 3,
    min: 1,
    description: 'Code and packages of all components of an account, in bytes. Further components are refused.',
  }),
  maxSources: integer('SLUICE_MAX_SOURCES', {
    fallback: 0,
    min: 0,
    description: 'Sources of an account; further ones are refused. 0: no limit. An installation that is open to strangers should set it.',
  }),
  allowPrivateHosts,
  protectedHosts,
}) {
  /** Every `endpoint_url` begins with it. */
  get endpointsUrl(): string {
    return endpointsUrlOf(this);
  }
}

export const settings = [CatalogConfig, SecretsConfig];
