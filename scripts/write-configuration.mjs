// npm run configuration: generates .env.example and docs/operations/configuration.md from the declarations of the services. With --check it compares
// them instead, and checks that docker-compose.yml passes every variable of a service on to it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { CORE_SCHEMA, load, mergeTag } from 'js-yaml';
import { SERVICES } from '../dist/libs/contracts/src/index.js';
import { COMMON_SETTINGS } from '../dist/libs/service/src/index.js';
import { FirstAccountConfig } from '../dist/apps/gateway/src/gateway.config.js';
import { inRoot } from './shell/paths.mjs';
import { LAUNCHER_VARIABLES } from './launch/settings.mjs';

/** @typedef {{ name: string, fallback?: string, values?: string, description: string, secret?: boolean }} Declared */
/** @typedef {Declared & { users: string[] }} Documented */

/** The variables that only docker-compose.yml reads. @type {Declared[]} */
const COMPOSE_VARIABLES = [
  { name: 'SLUICE_VERSION', fallback: 'dev', description: 'Tag of the image `sluice`, which the first start builds.' },
  { name: 'POSTGRES_PASSWORD', description: 'Password of PostgreSQL. Empty: generated at the first start.' },
  {
    name: 'SLUICE_POSTGRES_CONNECTIONS',
    fallback: '300',
    description: 'Connections that PostgreSQL accepts (`max_connections`): enough for two replicas of each service.',
  },
  { name: 'KAFKA_HEAP_OPTS', fallback: '-Xms256m -Xmx256m', description: 'Memory of the Kafka broker, as options of Java.' },
];

const variables = await declared();
const files = { '.env.example': envExample(variables), 'docs/operations/configuration.md': page(variables) };
const isCheck = process.argv.includes('--check');
for (const [file, text] of Object.entries(files)) {
  if (!isCheck) {
    mkdirSync(dirname(inRoot(file)), { recursive: true });
    writeFileSync(inRoot(file), text);
  } else if (readFileSync(inRoot(file), 'utf8') !== text) {
    console.error(`${file} is not up to date; run npm run configuration`);
    process.exitCode = 1;
  }
}

if (isCheck) {
  for (const problem of composeProblems(variables)) {
    console.error(problem);
    process.exitCode = 1;
  }
}

/**
 * A variable that Compose does not pass on cannot be set there, and one that no service declares does nothing.
 * @param {Documented[]} all
 */
function composeProblems(all) {
  // Determined by the containers themselves: ports are published, folders are part of the image.
  const fixed = [
    'SLUICE_HTTP_HOST',
    'SLUICE_HTTP_PORT',
    'SLUICE_ENDPOINTS_HOST',
    'SLUICE_ENDPOINTS_PORT',
    'SLUICE_HEALTH_PORT',
    'SLUICE_HEALTH_HOST',
    'SLUICE_DATA_DIR',
  ];
  const image = readFileSync(inRoot('Dockerfile'), 'utf8');
  const text = readFileSync(inRoot('docker-compose.yml'), 'utf8');
  /** @type {any} */
  const compose = load(text, { schema: CORE_SCHEMA.withTags([mergeTag]) });
  const read = [...text.matchAll(/\$\{(\w+)/g)].map(([, name = '']) => name);
  const passedOn = Object.values(compose.services).flatMap(({ environment = {} }) =>
    Object.keys(environment).filter((name) => environment[name] === null),
  );
  const undocumented = [...new Set([...read, ...passedOn])].filter(
    (name) => !all.some((variable) => variable.name === name || (variable.secret && `${variable.name}_FILE` === name)),
  );
  const ofServices = SERVICES.flatMap((service) => {
    const declared = all.filter(({ users }) => users.includes(service)).map(({ name }) => name);
    const passed = Object.keys(compose.services[service].environment);
    const missing = declared.filter(
      (name) => !passed.includes(name) && !passed.includes(`${name}_FILE`) && !fixed.includes(name) && !image.includes(` ${name}=`),
    );
    const unknown = passed.filter((name) => !declared.includes(name.replace(/_FILE$/, '')));
    return [
      ...missing.map((name) => `docker-compose.yml does not pass ${name} on to ${service}`),
      ...unknown.map((name) => `docker-compose.yml sets ${name} for ${service}, which does not read it`),
    ];
  });
  return [...undocumented.map((name) => `docker-compose.yml reads ${name}, which is not declared`), ...ofServices];
}

/**
 * Every variable once, with the services that read it.
 * @returns {Promise<Documented[]>}
 */
async function declared() {
  /** @type {Map<string, Documented>} */
  const found = new Map();
  /** @param {Declared} variable @param {string} user */
  const add = (variable, user) => {
    const known = found.get(variable.name) ?? { ...variable, users: [] };
    if (known.description !== variable.description || known.fallback !== variable.fallback || known.values !== variable.values)
      throw new Error(`${variable.name} is declared twice, in different ways`);
    if (!known.users.includes(user)) known.users.push(user);
    found.set(variable.name, known);
  };
  for (const variable of LAUNCHER_VARIABLES) add(variable, 'npm start');
  for (const variable of COMPOSE_VARIABLES) add(variable, 'Compose');
  for (const service of SERVICES) {
    for (const part of COMMON_SETTINGS) for (const variable of part.variables) add(variable, service);
    const { settings } = await import(`../dist/apps/${service}/src/${service}.config.js`);
    for (const part of settings) for (const variable of part.variables) add(variable, service);
  }
  for (const variable of FirstAccountConfig.variables) add(variable, 'account bootstrap');
  return [...found.values()];
}

/** @param {string[]} users */
function usedBy(users) {
  return SERVICES.every((service) => users.includes(service)) ? 'every service' : users.join(', ');
}

/** The variables by the services that read them. @param {Documented[]} all @returns {[string, Documented[]][]} */
function grouped(all) {
  /** @type {Map<string, Documented[]>} */
  const groups = new Map();
  for (const variable of all) groups.set(usedBy(variable.users), [...(groups.get(usedBy(variable.users)) ?? []), variable]);
  const headings = ['npm start', 'Compose', 'every service', 'account bootstrap'];
  /** @param {string} heading */
  const rank = (heading) => (headings.includes(heading) ? headings.indexOf(heading) : headings.length);
  return [...groups].sort(([a], [b]) => rank(a) - rank(b));
}

/** @param {Documented[]} all */
function envExample(all) {
  const sections = grouped(all).map(([heading, members]) => {
    const lines = members.flatMap(({ name, fallback, description, secret }) => [
      ...wrap(`${description}${secret ? ` Or ${name}_FILE: a file that contains it.` : ''}`.replaceAll('`', '')).map((line) => `# ${line}`),
      `#${name}=${fallback ?? ''}`,
    ]);
    return [`# --- ${heading} ---`, '', ...lines].join('\n');
  });
  return `# Every variable of the services, npm start and Compose, with its default. Copy this file to .env and change what you need; the environment takes precedence.
# Generated by npm run configuration.

${sections.join('\n\n')}
`;
}

/** @param {Documented[]} all */
function page(all) {
  const sections = grouped(all).map(([heading, members]) => {
    const rows = members.map(
      ({ name, fallback, values, description, secret }) =>
        `| \`${name}\`${secret ? ' (secret)' : ''} | ${fallback ? `\`${fallback}\`` : ''} | ${values ?? ''} | ${description.replaceAll('|', '\\|')} |`,
    );
    return [
      `## ${heading.charAt(0).toUpperCase()}${heading.slice(1)}`,
      '',
      '| Variable | Default | Values | Meaning |',
      '| --- | --- | --- | --- |',
      ...rows,
    ].join('\n');
  });
  return `<!-- Generated by npm run configuration. -->

# Configuration

Sluice is configured by environment variables. An empty variable counts as absent. A service reports all of its bad variables at once and exits with code 1.

A variable marked as secret can be given as a file instead: \`DATABASE_PASSWORD_FILE=/run/secrets/database-password\`. The last line break of the file is not part of the secret.

With \`npm start\`, variables can also be in the file \`.env\`, which \`npx sluice\` reads, too; the environment takes precedence. \`npm start\` names variables that are almost those of Sluice, such as \`SLUICE_HTTP_PROT\`; nothing warns of other unknown names. Compose reads \`.env\` in the same way. On Kubernetes, they are in the ConfigMaps and Secrets that [kubernetes.md](kubernetes.md) describes. The command line has [variables of its connection](../reference/cli.md#access).

${sections.join('\n\n')}
`;
}

/** @param {string} text @returns {string[]} lines of at most 118 characters */
function wrap(text) {
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < 118) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
