import { defineConfig } from 'vitest/config'
import { closingLine } from './test/harness/src/closing-line.ts'
import { available } from './test/harness/src/require-server.ts'

const places = ['packages/*/test', 'test', 'examples']
const named = (ending: string): string[] => places.map((place) => `${place}/**/*${ending}`)

/** Everything that is SQL, once more on the oldest PostgreSQL that is supported. */
const onOldest = ['statements', 'operate', 'migrations', 'consume'].map(
  (part) => `packages/core/test/${part}/**/*.test.ts`,
)

/** These files start a Redis as they are loaded, so none of their tests could skip itself. */
const withoutRedis = available('redis', { own: true }) ? [] : ['packages/relay-redis-streams/test/**']

export default defineConfig({
  // Workspace packages are run from their sources, so that tests need no build.
  ssr: { resolve: { conditions: ['@inorder/source'] } },
  test: {
    reporters: ['default', closingLine()],
    maxWorkers: 2,
    // A test that passes on the second try is a broken test.
    retry: 0,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
    projects: [
      { extends: true, test: { name: 'unit', include: named('.unit.test.ts') } },
      {
        extends: true,
        test: {
          name: 'integration',
          include: named('.test.ts'),
          exclude: ['**/node_modules/**', ...named('.unit.test.ts'), ...withoutRedis],
          globalSetup: ['test/harness/src/global-setup.ts'],
        },
      },
      ...(available('postgres-14', { own: true })
        ? [
            {
              extends: true as const,
              test: {
                name: 'postgres-14',
                include: onOldest,
                exclude: ['**/node_modules/**', ...named('.unit.test.ts')],
                globalSetup: ['test/harness/src/global-setup.ts'],
              },
            },
          ]
        : []),
    ],
  },
})
