import js from '@eslint/js'
import { defineConfig } from 'eslint/config'
import tseslint from 'typescript-eslint'

const configFiles = ['*.config.ts', '*.config.mjs', 'packages/*/*.config.ts']
const tests = ['**/*.test.ts']

const noDefaultExport = ['ExportDefaultDeclaration', 'ExportSpecifier[exported.name="default"]'].map((selector) => ({
  selector,
  message: 'Use a named export: a default one has another name in every file that imports it.',
}))

// Chains too: describe.concurrent.skip, test.only.each.
const suite = '/^(it|test|describe|suite|bench)$/'
const noTestSwitches = [
  ...['object.name', 'object.object.name', 'object.callee.object.name'].map(
    (path) => `MemberExpression[${path}=${suite}][property.name=/^(only|skip|todo|fails)$/]`,
  ),
  `CallExpression[callee.name=${suite}] > ObjectExpression > Property[key.name=/^(retry|only|skip|todo|fails|repeats)$/]`,
  'CallExpression[callee.object.name=/^(vi|vitest)$/][callee.property.name=/^(mock|doMock|stubGlobal|useFakeTimers)$/]',
].map((selector) => ({
  selector,
  message:
    'A test runs always, alone and once, against the real thing. A missing server is skipped with skipIf(!available(...)); nothing is retried or mocked.',
}))

const timerNames = ['setTimeout', 'setInterval']
const noTimers =
  'Only relay/relay.ts and relay/pace.ts own timers. Take a signal, a deadline or a pace from your caller.'

export default defineConfig(
  { ignores: ['**/dist/**', '**/node_modules/**', '**/.turbo/**'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.mjs', '**/*.cjs'],
    extends: [js.configs.recommended],
    languageOptions: {
      globals: Object.fromEntries(
        [
          'AbortController',
          'AbortSignal',
          'Buffer',
          'URL',
          'clearTimeout',
          'console',
          'fetch',
          'performance',
          'process',
          'setTimeout',
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
  { files: ['**/*.cjs'], languageOptions: { globals: { module: 'writable', require: 'readonly' } } },
  {
    files: ['**/*.ts'],
    extends: [js.configs.recommended, tseslint.configs.strictTypeChecked],
    languageOptions: {
      // One program for the whole repository, the one `tsc --noEmit` checks. The project service would take each
      // package's own tsconfig.json instead, which has no source condition and so knows the other packages only after
      // a build.
      parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // The compiler knows every name; this rule does not know types.
      'no-undef': 'off',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      // Numbers read the same in every message; everything else must be made a string on purpose.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // `() => done()` is the common shape of a callback that returns nothing.
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      // A name that begins with _ says that the value is taken out and thrown away.
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // An in-memory implementation of an asynchronous contract has nothing to wait for, and must still reject rather
      // than throw: `async` is how.
      '@typescript-eslint/require-await': 'off',
      'max-lines': ['error', { max: 250, skipBlankLines: true, skipComments: true }],
      'no-restricted-syntax': ['error', ...noDefaultExport],
      'no-warning-comments': ['error', { terms: ['todo', 'fixme', 'xxx'] }],
    },
  },
  { files: tests, rules: { 'no-restricted-syntax': ['error', ...noDefaultExport, ...noTestSwitches] } },
  { files: configFiles, rules: { 'no-restricted-syntax': 'off' } },
  {
    files: ['packages/core/src/**/*.ts'],
    ignores: ['packages/core/src/relay/relay.ts', 'packages/core/src/relay/pace.ts'],
    rules: {
      'no-restricted-globals': ['error', ...timerNames.map((name) => ({ name, message: noTimers }))],
      'no-restricted-properties': [
        'error',
        ...timerNames.flatMap((property) =>
          ['globalThis', 'global'].map((object) => ({ object, property, message: noTimers })),
        ),
      ],
      'no-restricted-imports': [
        'error',
        {
          paths: ['node:timers', 'node:timers/promises', 'timers', 'timers/promises'].map((name) => ({
            name,
            message: noTimers,
          })),
        },
      ],
    },
  },
)
