import { ranOutOfMemory } from '../processes/runner-end.js';
import type { InstallLimits } from './install-limits.js';

/**
 * Why npm has not installed the packages.
 * - `missing` a package does not exist: the author must change the component
 * - `rejected` the packages do not fit: the author must change the component
 * - `unreachable` the registry did not respond
 * - `not-stored` npm was not allowed to ask the registry, and has not downloaded the packages before
 * - `failed` npm failed because of the packages, and the message is its own: the author must change the component
 * - `broken` npm could not work
 */
export interface NpmFailure {
  kind: 'missing' | 'rejected' | 'failed' | 'unreachable' | 'not-stored' | 'broken';
  message: string;
  /** The package that is missing */
  name?: string;
}

const mb = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MB`;

const limitMessages = (limits: InstallLimits): Record<string, string> => ({
  time: `The packages could not be installed within ${limits.wallMs / 1000} s`,
  cpu: `The packages could not be installed within ${limits.cpuMs / 1000} s of CPU time`,
  size: `The packages take more than ${mb(limits.bytes)}`,
  files: `The packages have more than ${limits.files} files`,
});

const unreachable = new Set([
  ...[
    'ENOTFOUND',
    'ECONNREFUSED',
    'ECONNRESET',
    'ETIMEDOUT',
    'EAI_AGAIN',
    'ENETUNREACH',
    'EHOSTUNREACH',
    'EACCES',
    'ERR_SOCKET_TIMEOUT',
    'EIDLETIMEOUT',
  ],
  ...[
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'CERT_HAS_EXPIRED',
    'E407',
    'E500',
    'E502',
    'E503',
    'E504',
  ],
]);

/** @param exit as `runInJail` returns it; output: npm's, with `--json` */
export function npmFailure(exit: string, output: string, errors: string, limits: InstallLimits): NpmFailure {
  const limit = limitMessages(limits)[exit];
  if (limit) return { kind: 'rejected', message: limit };
  if (ranOutOfMemory(errors))
    return {
      kind: 'rejected',
      message: `npm needs more than ${limits.heapMb} MB of memory for the packages: they have too many dependencies, or a package.json that is too large`,
    };
  const { code = '', summary = '', detail = '' } = reported(output);
  const subject = /'([^']+)'/.exec(`${summary} ${detail}`)?.[1];
  if (code === 'ENOTCACHED') return { kind: 'not-stored', message: 'The registry of npm packages cannot be reached' };
  if (unreachable.has(code)) return { kind: 'unreachable', message: `The registry of npm packages cannot be reached (${code})` };
  const rejected = (message: string): NpmFailure => ({ kind: 'rejected', message });
  switch (code) {
    case 'E404': {
      const name = subject?.replace(/^(@?[^@]+)@.*$/, '$1');
      return { kind: 'missing', message: `The registry has no package ${name === undefined ? 'of this name' : `"${name}"`}`, name };
    }
    case 'ETARGET':
    case 'E405':
      return rejected(
        `The registry has no such version: ${/No matching version found for (\S+?)\.?(?:\s|$)/.exec(summary)?.[1] ?? summary}`,
      );
    case 'E401':
    case 'E403':
    case 'ENEEDAUTH':
      return rejected('The registry refuses access to a package');
    case 'ERESOLVE':
      return rejected(`The packages do not fit together: ${firstLine(summary)}`);
    case 'EINTEGRITY':
      return rejected('A package is not what the registry says it is (its checksum differs)');
    case 'EALLOWGIT':
    case 'EALLOWREMOTE':
    case 'EALLOWFILE':
    case 'EALLOWDIRECTORY':
    case 'EUNSUPPORTEDPROTOCOL':
      return rejected(`A package depends on one that is not in the registry: ${firstLine(summary)}`);
    case 'EFBIG':
      return rejected('A package has a file that is too large');
    case '':
      // an exception in npm that has no code is a mistake of npm, which certain packages cause, such as a dependency named `__proto__`
      return summary
        ? { kind: 'failed', message: firstLine(summary) }
        : { kind: 'broken', message: `npm ended with ${exit}: ${firstLine(errors)}` };
    default:
      return { kind: 'failed', message: firstLine(summary) || code };
  }
}

function reported(output: string): { code?: string; summary?: string; detail?: string } {
  try {
    return (JSON.parse(output.slice(output.indexOf('{'))) as { error?: object }).error ?? {};
  } catch {
    return {};
  }
}

/** Without addresses, which may be an operator's own. */
const firstLine = (text: string): string => (text.trim().split('\n')[0] ?? '').replace(/https?:\/\/\S+/g, '(address)').slice(0, 300);
