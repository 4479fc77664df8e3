/** Which tests run, in JSON: the runner is another process. */
export const testsVariable = 'HOLDFAST_MUTANTS_TESTS'
