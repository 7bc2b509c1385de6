/** Every scenario of the bridge page. */
import type { Scenario } from './scenario.ts'
import { basics } from './scenarios/basics.ts'
import { questions } from './scenarios/questions.ts'
import { streams } from './scenarios/streams.ts'
import { taskScenarios } from './scenarios/tasks.ts'

export const SCENARIOS: readonly Scenario[] = [...basics, ...streams, ...questions, ...taskScenarios]
