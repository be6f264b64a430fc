import { checkScripts } from './check-scripts.ts'

checkScripts(1)
