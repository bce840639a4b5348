import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { explain } from '../shell/explained-error.mjs';
import { inRoot } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';
import { compose, docker, overrideFile } from './compose.mjs';

/** @typedef {import('./compose.mjs').ComposeSettings} ComposeSettings */

/** Why this machine cannot run the containers; undefined if it can. */
export async function whyNoContainers() {
  const { code, output } = await run('docker', ['info', '--format', '{{.ServerVersion}}']);
  if (code !== 0) return `no container engine responds (docker info: ${output.trim().split('\n').at(-1)}).`;
  if ((await run('docker', ['compose', 'version'])).code !== 0) return 'Docker has no Compose plugin (docker compose version fails).';
  const problems = await Promise.all((await baseImages()).map(fetchImage));
  return problems.find((problem) => problem !== undefined);
}

/** The images of the Dockerfile's stages, and those of the services that are not built. */
async function baseImages() {
  const [dockerfile, composeFile] = await Promise.all(['Dockerfile', 'docker-compose.yml'].map((file) => readFile(inRoot(file), 'utf8')));
  const froms = [...(dockerfile ?? '').matchAll(/^FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?/gim)];
  const services = [...(composeFile ?? '').matchAll(/^\s+image:\s*['"]?([\w./:-]+)['"]?\s*$/gm)].map(([, image]) => image ?? '');
  const stages = froms.map(([, , stage]) => stage);
  return [...new Set([...froms.map(([, image]) => image ?? ''), ...services])].filter((image) => !stages.includes(image));
}

/**
 * @param {string} image
 * @returns {Promise<string | undefined>} why it is neither present nor available for download
 */
async function fetchImage(image) {
  if ((await run('docker', ['image', 'inspect', image])).code === 0) return undefined;
  const { code, output } = await run('docker', ['pull', '--quiet', image]);
  return code === 0 ? undefined : `the image ${image} is missing and cannot be pulled (${output.trim().split('\n').at(-1)}).`;
}

/**
 * Builds the image and starts the containers of docker-compose.yml; resolves when they are healthy.
 * @param {ComposeSettings} settings
 * @param {Record<string, string | number | undefined>} variables of docker-compose.yml
 */
export async function startProject(settings, variables) {
  const lines = Object.entries({ SLUICE_VERSION: settings.project, ...variables }).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(settings.folder, '.env'), lines.join(''));
  await writeFile(overrideFile(settings), '{"services":{}}');
  await removeLeftovers();
  await compose(settings, ['build']);
  await compose(settings, ['up', '--detach', '--wait', '--no-build']);
}

/**
 * Removes the containers, their volumes, the image and the folder.
 * @param {ComposeSettings} settings
 */
export async function removeProject(settings) {
  await compose(settings, ['down', '--volumes', '--remove-orphans', '--timeout', '10']).catch((error) => console.error(explain(error)));
  await docker(['image', 'rm', '--force', `sluice:${settings.project}`]).catch(() => {});
  await rm(settings.folder, { recursive: true, force: true });
}

/** Removes the projects of runs that were killed. */
async function removeLeftovers() {
  const labels = await docker(['ps', '--all', '--format', '{{.Label "com.docker.compose.project"}}']);
  for (const project of new Set(labels.split('\n'))) {
    const pid = /^sluice-(?:test|attack)-(\d+)$/.exec(project)?.[1];
    if (!pid || isAlive(Number(pid))) continue;
    await docker(['compose', '--project-name', project, 'down', '--volumes', '--timeout', '1']);
    await docker(['image', 'rm', '--force', `sluice:${project}`]).catch(() => {});
  }
}

/**
 * Counts a process of another user, and a zombie, as alive: what belongs to it would be removed.
 * @param {number} pid
 */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM';
  }
}
