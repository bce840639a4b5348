// Loaded into the runtime before its main program: components resolve every host name to the mock server, trust its certificate and reach nothing else.
import { readFileSync } from 'node:fs';

const { REAL_COMPONENTS_ADDRESS: address = '', REAL_COMPONENTS_CERTIFICATE: certificate = '' } = process.env;

// the variables also reach the other services and their tools
if (process.argv[1]?.endsWith('/dist/bundles/runtime.js')) {
  const { defaultSandboxConfig } = await import('../../dist/apps/runtime/src/sandbox/sandbox-config.js');
  Object.assign(defaultSandboxConfig, {
    lookup: async () => [{ address }],
    ownHosts: { refuses: async (/** @type {string} */ target) => target !== address },
    trustedCa: readFileSync(certificate, 'utf8'),
  });
  // The modules of the bundle cannot be changed from outside: the runtime runs without it.
  await import('../../dist/apps/runtime/src/main.js');
  await new Promise(() => {});
}
