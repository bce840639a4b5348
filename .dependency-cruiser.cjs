/** The rules of the rooms: each says in a sentence what breaks otherwise. */
module.exports = {
  forbidden: [
    {
      name: 'apps-are-islands',
      comment:
        'An app knows libraries only: what it needs of another app it asks for over Kafka, so that each can be deployed, scaled and replaced alone.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'libs-know-no-apps',
      comment: 'A library that knows an app serves that app alone.',
      severity: 'error',
      from: { path: '^libs/' },
      to: { path: '^apps/' },
    },
    {
      name: 'libs-by-their-front-door',
      comment: "Other code enters a library by its index: what isn't exported there may change at any time.",
      severity: 'error',
      from: { path: '^(apps|libs)/([^/]+)/' },
      to: { path: '^libs/([^/]+)/src/(?!index\\.ts)', pathNot: '^$1/$2/' },
    },
    {
      name: 'kafkajs-only-in-messaging',
      comment: 'The repairs and settings that kafkajs needs are made in one place; others may name its types only.',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: '^libs/messaging/' },
      to: { path: 'node_modules/kafkajs', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'nobody-imports-nest-kafka',
      comment: "Nest's stock Kafka transport loses messages and blocks partitions: libs/messaging has ours.",
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: '^libs/messaging/' },
      to: { path: '@nestjs/microservices/(client|server)/.*kafka' },
    },
    {
      name: 'sql-in-repositories',
      comment: 'Only repositories speak SQL: pg itself is known to libs/database alone.',
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
      comment: 'What runs in production must not need what only tests have.',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: '(spec\\.ts|-for-tests\\.ts)$|^libs/testing/|/attacks/' },
      to: { path: '(\\.spec\\.ts$|\\.int-spec\\.ts$|^libs/testing/|^test/)' },
    },
    {
      name: 'no-circles',
      comment: 'Two files that need each other are one file, or miss a third.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'resolvable',
      comment: 'An import that resolves to nothing fails at run time.',
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
