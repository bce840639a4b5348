export { candidates, MODULE_ENDINGS, relativeImports } from './relative-imports.js';
