import { checkPlans } from './check-plans.ts'
import { regimes } from './regimes.ts'

for (const regime of regimes) checkPlans(regime)
