// Imports run one way: contract <- storage, migrations <- write, relay, consume, operate <- outbox <- index.
const core = '^packages/core/src/'
const useCases = ['write', 'relay', 'consume', 'operate']
const adapter = '^packages/(relay-[^/]+)/'

module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'Two files that import each other are one file, or need a third one below both.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-unresolvable',
      comment: 'An import that points nowhere makes every other rule blind to it.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'contract-imports-nothing',
      comment: 'The contract is what everybody else agrees on, so it depends on nobody.',
      severity: 'error',
      from: { path: `${core}contract/` },
      to: { pathNot: `${core}contract/` },
    },
    {
      name: 'storage-and-migrations-import-the-contract-only',
      comment: 'SQL knows the contract and the names of the tables, never who runs it.',
      severity: 'error',
      from: { path: `${core}(storage|migrations)/` },
      // $1 is the folder that imports: its own files are allowed.
      to: { path: core, pathNot: [`${core}contract/`, `${core}$1/`, `${core}storage/names\\.ts$`] },
    },
    ...useCases.map((useCase) => ({
      name: `${useCase}-imports-no-other-use-case`,
      comment: 'What two use cases share belongs below both: in the contract or in storage.',
      severity: 'error',
      from: { path: `${core}${useCase}/` },
      to: { path: `${core}(${useCases.filter((other) => other !== useCase).join('|')})/` },
    })),
    {
      name: 'clients-import-the-contract-only',
      comment:
        'A client turns a driver into the contract. It knows no use case, and no statement but the guard around one.',
      severity: 'error',
      from: { path: `${core}clients/` },
      to: { path: core, pathNot: [`${core}(contract|clients)/`, `${core}storage/guarded-statement\\.ts$`] },
    },
    {
      name: 'use-cases-are-wired-in-one-place',
      comment: 'Only outbox.ts wires the use cases together and only index.ts publishes them.',
      severity: 'error',
      from: { path: core, pathNot: `${core}((outbox|index)\\.ts$|(${useCases.join('|')})/)` },
      to: { path: `${core}(${useCases.join('|')})/` },
    },
    {
      name: 'nobody-imports-the-wiring',
      comment: 'index.ts and outbox.ts are the top: an import from below would make a circle of the whole package.',
      severity: 'error',
      from: { path: core, pathNot: `${core}(outbox|index)\\.ts$` },
      to: { path: `${core}(outbox|index)\\.ts$` },
    },
    {
      name: 'core-only-through-its-index',
      comment: 'Whatever is not in the index may change without notice. Import @inorder/core.',
      severity: 'error',
      // Core's own tests may look inside; the benchmarks measure the statements themselves, all of them in one file.
      from: { pathNot: ['^packages/core/', '^benchmarks/src/hot-statements\\.ts$'] },
      to: { path: core, pathNot: `${core}index\\.ts$` },
    },
    {
      name: 'adapters-are-islands',
      comment: 'An adapter that needs another one cannot be installed alone.',
      severity: 'error',
      from: { path: adapter },
      to: { path: adapter, pathNot: '^packages/$1/' },
    },
    {
      name: 'packages-import-no-workshop',
      comment: 'What is published cannot depend on what is not.',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/' },
      to: { path: '^(test|tools|benchmarks|examples)/' },
    },
    {
      name: 'sources-import-no-tests',
      comment: 'Tests know the sources, never the other way round.',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/' },
      to: { path: '^packages/[^/]+/test/' },
    },
    {
      name: 'sources-import-no-development-dependency',
      comment: 'Whoever installs the package does not get its devDependencies: declare a dependency or a peer.',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['npm', 'npm-peer', 'npm-optional', 'type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: ['node_modules', '/dist/'] },
    exclude: { path: '/dist/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    combinedDependencies: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@inorder/source', 'import', 'node', 'default', 'types'],
    },
  },
}
