import { defineConfig } from '@hey-api/openapi-ts';

export default defineConfig({
  input: '../../docs/openapi.yaml',
  output: { path: 'src/generated', module: { extension: '.js' } },
  plugins: [
    '@hey-api/typescript',
    // one class with a method for each operation, which returns the body of the response
    { name: '@hey-api/sdk', operations: { strategy: 'single', containerName: 'Operations', methods: 'instance' }, responseStyle: 'data' },
    { name: '@hey-api/client-fetch', throwOnError: true },
  ],
});
