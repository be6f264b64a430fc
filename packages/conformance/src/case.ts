import type { PublisherCapabilities } from '@inorder/core'
import { playScene, type Scene } from './scene.ts'
import { type ConformanceSubject, type Hook, hookMeanings } from './subject.ts'

/** One promise of the publish contract and how to see whether it is kept. */
export interface CaseDefinition {
  /** The promise, as a sentence. Unique in the suite. */
  readonly name: string
  readonly needs: readonly Hook[]
  /** Says why the promise does not concern a publisher with these capabilities. */
  readonly exempts?: (capabilities: PublisherCapabilities) => string | undefined
  readonly play: (scene: Scene) => Promise<void>
}

/** A case bound to a subject, for any test runner: call `run`, a rejection is a failure. */
export interface ConformanceCase {
  readonly name: string
  readonly needs: readonly Hook[]
  /** Why this subject cannot be held to the case. Show it; `run` rejects with the same words. */
  readonly skipped: string | undefined
  readonly run: () => Promise<void>
}

export function bindCase(
  definition: CaseDefinition,
  subject: ConformanceSubject,
  capabilities: PublisherCapabilities,
): ConformanceCase {
  const missing = definition.needs.filter((hook) => subject[hook] === undefined)
  const skipped =
    missing.length > 0
      ? `the subject has no ${missing.map((hook) => `${hook}, which ${hookMeanings[hook]}`).join(' and no ')}`
      : definition.exempts?.(capabilities)
  return {
    name: definition.name,
    needs: definition.needs,
    skipped,
    async run() {
      if (skipped !== undefined) throw new Error(`Skipped: ${skipped}`)
      await playScene(subject, definition.play)
    },
  }
}
