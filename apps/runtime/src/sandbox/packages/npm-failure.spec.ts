import { expect, it } from '@jest/globals';
import { defaultInstallLimits } from './install-limits.js';
import { npmFailure } from './npm-failure.js';

const HEAP_IS_FULL =
  '\n<--- Last few GCs --->\n\n[2:0x1] 21 s: Mark-Compact\n\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n';

it.each([
  ['SIGSEGV', HEAP_IS_FULL],
  ['SIGABRT', HEAP_IS_FULL],
  ['134', HEAP_IS_FULL],
  ['SIGSEGV', "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"],
])('rejects packages for which npm needs too much memory, whichever way it ends: %s %j', (exit, errors) => {
  expect(npmFailure(exit, '', errors, defaultInstallLimits)).toEqual({
    kind: 'rejected',
    message: 'npm needs more than 256 MB of memory for the packages: they have too many dependencies, or a package.json that is too large',
  });
});

it('reports an unknown end of npm as a failure of the service', () => {
  expect(npmFailure('SIGKILL', '', 'killed', defaultInstallLimits)).toEqual({ kind: 'broken', message: 'npm ended with SIGKILL: killed' });
});
