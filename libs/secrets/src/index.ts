export { isSealed, SecretBox, SecretsKeyProblem } from './secret-box.js';
export { SecretsConfig } from './secrets.config.js';
