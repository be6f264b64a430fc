export interface Manifest {
  readonly [field: string]: unknown
}

// What a package needs depends on what it does; everything else is the same decision made once.
const FREE_FIELDS = new Set(['dependencies', 'peerDependencies', 'peerDependenciesMeta', 'devDependencies', 'bin'])
const OWN_VALUES = new Set([
  'name',
  'version',
  'description',
  'exports',
  'publishConfig',
  'scripts',
  'keywords',
  'repository',
])

/** What is wrong with a public package, measured against another one that sets the pattern. */
export function packageFaults(manifest: Manifest, pattern: Manifest): string[] {
  const name = String(manifest.name)
  const faults: string[] = []
  const fields = fixedFields(manifest)
  for (const field of fixedFields(pattern)) if (!fields.includes(field)) faults.push(`${name}: "${field}" is missing`)
  for (const field of fields) {
    if (!(field in pattern)) faults.push(`${name}: "${field}" is in no other package`)
    else if (!OWN_VALUES.has(field) && !same(manifest[field], pattern[field])) {
      faults.push(`${name}: "${field}" differs from ${String(pattern.name)}`)
    }
  }
  return [...faults, ...exportFaults(name, manifest)]
}

/** What is published must offer the same entry points as the sources, without the sources. */
function exportFaults(name: string, manifest: Manifest): string[] {
  const exports = asRecord(manifest.exports)
  const published = asRecord(asRecord(manifest.publishConfig).exports)
  if (!same(Object.keys(exports), Object.keys(published))) {
    return [`${name}: "publishConfig.exports" has other entry points than "exports"`]
  }
  return Object.entries(exports).flatMap(([entry, conditions]) => {
    if (typeof conditions === 'string') return []
    const { '@inorder/source': source, ...rest } = asRecord(conditions)
    const faults = source === undefined ? [`${name}: "${entry}" has no @inorder/source condition`] : []
    if (!same(rest, published[entry])) faults.push(`${name}: "${entry}" is published with other conditions`)
    return faults
  })
}

function fixedFields(manifest: Manifest): string[] {
  return Object.keys(manifest).filter((field) => !FREE_FIELDS.has(field))
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function same(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right)
}
