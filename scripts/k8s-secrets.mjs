// Creates the Secrets of an installation in Kubernetes that do not exist yet: k8s-secrets.mjs <Secret>/<key> …
// Runs in a pod, with the token of its ServiceAccount. Values are never printed, and an existing Secret is never changed.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The network may reject a new pod for some seconds, until its NetworkPolicies are applied on every node. */
const PATIENCE_MS = 60_000;
const ATTEMPT_TIMEOUT_MS = 3000;

/**
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<{ status: number, text: string }>}
 */
function callOnce(method, path, body) {
  return new Promise((resolve, reject) => {
    const call = request(
      {
        method,
        path,
        host: process.env.KUBERNETES_SERVICE_HOST,
        port: process.env.KUBERNETES_SERVICE_PORT,
        ca: readFileSync(`${ACCOUNT}/ca.crt`),
        headers: {
          authorization: `Bearer ${readFileSync(`${ACCOUNT}/token`, 'utf8').trim()}`,
          accept: 'application/json',
          // JSON is YAML, and the API server only accepts YAML for a server-side apply.
          ...(body && { 'content-type': 'application/apply-patch+yaml' }),
        },
        timeout: ATTEMPT_TIMEOUT_MS,
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
        response.on('error', reject);
      },
    );
    call.on('timeout', () => call.destroy(new Error(`no response within ${ATTEMPT_TIMEOUT_MS / 1000} s`)));
    call.on('error', reject);
    call.end(body && JSON.stringify(body));
  });
}

/**
 * Retries while the API server cannot be reached or reports an internal error.
 * @type {typeof callOnce}
 */
async function call(method, path, body) {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      const response = await callOnce(method, path, body);
      if (response.status < 500 && response.status !== 429) return response;
      if (performance.now() > deadline) throw new Error(`the API server returned ${response.status}`);
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await sleep(500);
  }
}

/**
 * @param {string} namespace
 * @param {string} name
 * @param {string} key
 */
async function ensureSecret(namespace, name, key) {
  const path = `/api/v1/namespaces/${namespace}/secrets/${name}`;
  const found = await call('GET', path);
  if (found.status === 200) {
    if (!(key in (JSON.parse(found.text).data ?? {}))) throw new Error(`the Secret ${name} exists, but has no key ${key}`);
    return console.log(`the Secret ${name} already exists`);
  }
  if (found.status !== 404) throw new Error(`reading the Secret ${name} failed: ${reason(found.text)}`);
  // Server-side apply, because RBAC can limit it to named Secrets; the name of a POST is not known when it is authorised.
  // A unique field manager turns replacing a value that another run has created meanwhile into a conflict.
  const applied = await call('PATCH', `${path}?fieldManager=sluice-secrets-${randomBytes(4).toString('hex')}`, {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'Opaque',
    metadata: { name, labels: { 'app.kubernetes.io/name': 'sluice-secrets', 'app.kubernetes.io/part-of': 'sluice' } },
    // URL-safe, so that it can also be part of a connection URL.
    data: { [key]: Buffer.from(randomBytes(32).toString('base64url')).toString('base64') },
  });
  if (applied.status === 409) return console.log(`the Secret ${name} already exists`);
  if (applied.status !== 200 && applied.status !== 201) throw new Error(`creating the Secret ${name} failed: ${reason(applied.text)}`);
  console.log(`created the Secret ${name}`);
}

/** @param {string} text */
function reason(text) {
  try {
    return JSON.parse(text).message;
  } catch {
    return text.slice(0, 200);
  }
}

try {
  const wanted = process.argv.slice(2).map((text) => text.split('/'));
  if (wanted.length === 0 || wanted.some((parts) => parts.length !== 2 || parts.includes('')))
    throw new Error('usage: k8s-secrets.mjs <Secret>/<key> …');
  if (!process.env.KUBERNETES_SERVICE_HOST) throw new Error('KUBERNETES_SERVICE_HOST is not set: this runs in a pod');
  const namespace = readFileSync(`${ACCOUNT}/namespace`, 'utf8').trim();
  for (const [name, key] of wanted) await ensureSecret(namespace, /** @type {string} */ (name), /** @type {string} */ (key));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
