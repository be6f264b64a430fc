/** Every file of the repository that is ours, relative to the root, with / on every system. */
export function ownFiles(root: string): string[]

/** The lines of a lock file that name a download address. */
export function lockFileFaults(content: string): string[]

/** The lines of a file that name one of these folders, or somebody's home. */
export function machinePathFaults(path: string, content: string, machineFolders: string[]): string[]
