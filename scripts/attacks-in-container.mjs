// npm run test:attacks-in-container: runs the hostile components of apps/runtime/src/sandbox/attacks in containers like the runtime's, once for each
// seccomp profile, and prints how many the jail contained. Needs Docker; builds the image if it does not exist (IMAGE, default sluice:dev).
import { spawnSync } from 'node:child_process';
import { ROOT } from './shell/paths.mjs';

const image = process.env.IMAGE ?? 'sluice:dev';
const environments = [
  { profile: "Docker's default profile", options: [] },
  { profile: 'docker/seccomp-runtime.json', options: ['--security-opt', 'seccomp=docker/seccomp-runtime.json'] },
];

/**
 * @param {string[]} args
 * @param {'inherit' | 'ignore'} [errors] where standard error goes
 */
function docker(args, errors = 'inherit') {
  const { status, stdout, error } = spawnSync('docker', args, { cwd: ROOT, stdio: ['ignore', 'pipe', errors], maxBuffer: 64 << 20 });
  if (error) throw error;
  return { status, stdout: String(stdout) };
}

if (docker(['image', 'inspect', image], 'ignore').status !== 0) docker(['build', '--tag', image, '.']);
const built = docker(['build', '--quiet', '--file', 'docker/attacks.Dockerfile', '--build-arg', `IMAGE=${image}`, '.']);
if (built.status !== 0) process.exit(1);

for (const { profile, options } of environments) {
  const hardened = ['--cap-drop=ALL', '--security-opt=no-new-privileges', '--network=none', ...options];
  const { stdout } = docker(['run', '--rm', ...hardened, built.stdout.trim(), '--json'], 'ignore');
  /** @type {{ ancestorTitles: string[], title: string, status: string, failureMessages: string[] }[]} */
  const tests = JSON.parse(stdout.slice(stdout.indexOf('{'))).testResults.flatMap(
    (/** @type {{ assertionResults: object[] }} */ file) => file.assertionResults,
  );
  const passed = tests.filter(({ status }) => status === 'passed');
  // Their titles are "group: name"
  const attacks = tests.filter(({ title }) => title.includes(': '));
  const contained = attacks.filter(({ status }) => status === 'passed');
  console.log(
    `${profile}: ${tests[0]?.ancestorTitles[0] ?? 'no tests ran'}: ${contained.length} of ${attacks.length} contained, ${passed.length} of ${tests.length} tests passed`,
  );
  for (const test of tests.filter(({ status }) => status !== 'passed'))
    console.log(`  ${test.status}: ${test.title}\n${test.failureMessages.join('\n')}`);
  if (passed.length < tests.length || tests.length === 0) process.exitCode = 1;
}
