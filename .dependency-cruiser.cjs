/** The import rules: each states in a sentence what breaks otherwise. */
module.exports = {
  forbidden: [
    {
      name: 'apps-are-islands',
      comment:
        'Apps import libraries only, and communicate with each other over Kafka, so that each can be deployed, scaled and replaced alone.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'libs-know-no-apps',
      comment: 'A library that imports an app can serve only that app.',
      severity: 'error',
      from: { path: '^libs/' },
      to: { path: '^apps/' },
    },
    {
      name: 'libs-by-their-front-door',
      comment: 'Import a library by its index: files that it does not export may change at any time.',
      severity: 'error',
      from: { path: '^(apps|libs)/([^/]+)/' },
      to: { path: '^libs/([^/]+)/src/(?!index\\.ts)', pathNot: '^$1/$2/' },
    },
    {
      name: 'kafkajs-only-in-messaging',
      comment: 'The fixes and settings that kafkajs needs are in one place; other code may import its types only.',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: '^libs/messaging/' },
      to: { path: 'node_modules/kafkajs', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'nobody-imports-nest-kafka',
      comment: "Nest's own Kafka transport loses messages and blocks partitions; use libs/messaging.",
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: '^libs/messaging/' },
      to: { path: '@nestjs/microservices/(client|server)/.*kafka' },
    },
    {
      name: 'swagger-in-gateway',
      comment: 'The gateway documents the REST API; no other service should load Swagger.',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: '^apps/gateway/' },
      to: { path: 'node_modules/@nestjs/swagger' },
    },
    {
      name: 'sql-in-repositories',
      comment: 'Only repositories use SQL, and only libs/database imports pg.',
      severity: 'error',
      from: { path: '^apps/', pathNot: '(\\.repository\\.ts|copy-[a-z]+\\.ts|spec\\.ts)$' },
      to: { path: 'node_modules/(pg|pg-copy-streams)/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'typeorm-in-repositories',
      comment: 'Only repositories read and write rows: other code knows TypeORM by the entities and modules that it declares.',
      severity: 'error',
      from: { path: '^apps/', pathNot: '(\\.(repository|entity|module)\\.ts|spec\\.ts)$' },
      to: { path: 'node_modules/(typeorm|@nestjs/typeorm)/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'product-knows-no-tests',
      comment: 'Production code must not import test code or development dependencies.',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: '(spec\\.ts|-for-tests\\.ts)$|^libs/testing/|/attacks/' },
      to: { path: '(\\.spec\\.ts$|\\.int-spec\\.ts$|^libs/testing/|^test/)' },
    },
    {
      name: 'no-circles',
      comment: 'Two files that import each other should be one file, or share a third.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'resolvable',
      comment: 'An import that cannot be resolved fails at run time.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.depcruise.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.js', '.mjs', '.cjs'],
    },
  },
};
