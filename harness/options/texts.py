"""What `--help` says about commands, and its examples."""

EXAMPLES = """\
examples:
  python run_eval.py                                          the quickstart
  python run_eval.py run configs/seeds.yaml                   a config; the same command resumes it
  python run_eval.py run configs/seeds.yaml --dry-run         list its jobs
  python run_eval.py run my_kernel.py --problem attention/sdpa --variant small
  python run_eval.py new solution attention/sdpa/mine         a candidate to begin with
  python run_eval.py run configs/quickstart.yaml --problems ../KernelBench/KernelBench/level1 \\
      --solutions my_kernels/
  python run_eval.py check my_kernels/                        compile candidates and screen their source; no GPU
  python run_eval.py report results/quickstart --format csv
  python run_eval.py compare results/before results/after --fail-on slower,broken
  python run_eval.py import runs/mine --kernelbench ../KernelBench --out packs/mine    other people's candidates
  python run_eval.py serve configs/quickstart.yaml
  python run_eval.py profile my_kernel.py --without seccomp    its kernels by Nsight Compute
  python run_eval.py doctor                                   what this machine lacks, and how to fix it

exit codes:
  0    the command was carried out, whatever the verdicts
  1    the harness failed; or doctor found that something vital is missing or a known verdict another one
  2    a wrong argument or config, or no space on the disk
  3    --require was not met, compare --fail-on found one, or a candidate fails check
  130  interrupted; what is finished is kept, and the same command resumes a run
"""

RUN_ABOUT = """\
Evaluate the candidates that a config selects, and show a leaderboard. The same command again resumes: what is finished
is skipped, unless its files have changed. Options replace what the config says.
"""

RUN_EXAMPLES = """\
examples:
  python run_eval.py run configs/seeds.yaml --device cuda:0 --out results/seeds-h200
  python run_eval.py run configs/quickstart.yaml --variant default --set timing.precision=0.01
  python run_eval.py run configs/quickstart.yaml --solutions solutions/attention/sdpa/composed.py --fresh
  python run_eval.py run configs/quickstart.yaml --variant default --problems ../KernelBench --solutions runs/mine

statuses, for --require:
  passed, incorrect, rejected, compile_error, load_error, runtime_error, crashed, timeout, out_of_memory,
  resource_limit, unsupported, invalid_reference, harness_error

exit code: 0 if the run was carried out, whatever the verdicts; 1 if the harness failed at a job (harness_error);
3 if --require was not met; 130 if it was interrupted
"""

NEW_ABOUT = """\
Write a working file to begin with: a problem with sizes, inputs and a reference, or a candidate that is the reference
itself, right and as fast. Existing files are not replaced.
"""

NEW_EXAMPLES = """\
examples:
  python run_eval.py new problem mine/scaled_relu             problems/mine/scaled_relu.py
  python run_eval.py new solution mine/scaled_relu/fused      solutions/mine/scaled_relu/fused.py
  python run_eval.py new solution attention/sdpa/mine

exit code: 0, or 2 if the file is there already
"""

REPORT_ABOUT = """\
Show the results of a run, finished or not: the leaderboard, its records as a table of all figures (csv), or all of it
as one page for a browser (html), or its verdicts for a CI system (junit).
"""

REPORT_EXAMPLES = """\
examples:
  python run_eval.py report results/quickstart
  python run_eval.py report results/quickstart --format csv > quickstart.csv
  python run_eval.py report results/quickstart --format html > quickstart.html
  python run_eval.py report results/quickstart --format junit > quickstart.xml
  python run_eval.py report results/h100 --claims
  python run_eval.py report results/mine --samples > samples.csv

exit code: 0, or 2 if the folder holds no run
"""

PROFILE_ABOUT = """\
Evaluate one candidate, and then look into a single call of it by Nsight Compute (ncu), or by Compute Sanitizer with
--sanitizer. Needs a GPU and the tool. What the tool sees is shown beside verdict and roofline, and changes neither.
"""

PROFILE_EXAMPLES = """\
examples:
  python run_eval.py profile my_kernel.py --problem attention/sdpa --without seccomp
  python run_eval.py profile my_kernel.py --problem attention/sdpa --without seccomp --sanitizer memcheck

exit code: 0 if the tool looked into the call; 1 if it did not; 2 if it is not installed, or there is no GPU
"""

DOCTOR_ABOUT = """\
Show what this machine can evaluate, what is missing, and how to fix it. Takes a few seconds and changes nothing. With
--try it also evaluates three candidates whose verdicts are known, in about a minute a device.
"""

DOCTOR_EXAMPLES = """\
examples:
  python run_eval.py doctor          # what is missing, and how to get it
  python run_eval.py doctor --try    # and whether verdicts are right here

exit code: 0 if Assay can run here; 1 if something vital is missing, like torch, or if a known verdict was another one
"""

COMPLETION_ABOUT = """\
Print a script that completes the commands and options of `assay` in a shell. `assay` is there after `pip install .`;
`python run_eval.py` is not completed: a shell completes the words of `python` for it.
"""

COMPLETION_EXAMPLES = """\
examples:
  pip install .                                               once, for the command `assay`
  assay completion bash > ~/.local/share/bash-completion/completions/assay
  assay completion zsh > "${fpath[1]}/_assay"

exit code: 0
"""

COMPARE_ABOUT = """\
Show how each candidate changed from run A to run B: faster, slower, same or can't tell (by the intervals of its
speedups), broken or fixed, missing or new. Candidates are matched by problem, variant, precision and name, whether or
not their source changed. Speedups on different devices, or over different baselines, are not compared.
"""

COMPARE_EXAMPLES = """\
examples:
  python run_eval.py compare results/before results/after
  python run_eval.py compare results/main results/branch --fail-on slower,broken,missing    a gate for CI
  python run_eval.py compare results/main results/branch --fail-on slower --fail-on not-compared
  python run_eval.py compare results/before results/after --format html > compare.html

exit code: 0, or 3 if --fail-on found something
"""

AUDIT_ABOUT = """\
Try known wrong and known right answers on each problem. A problem is sound if its inputs show every wrong answer and no
right one is refused; weak if a wrong answer passes; strict if a right one does not; unusable if it cannot be judged.
"""

AUDIT_EXAMPLES = """\
examples:
  python run_eval.py audit                                    every problem that comes with Assay
  python run_eval.py audit problems/attention/sdpa.py --variant small --compile
  python run_eval.py audit ../KernelBench/KernelBench/level1 --device cuda:0 --format markdown

exit code: 0, or with --require sound 3 if a problem is not
"""

CHECK_ABOUT = """\
Read each candidate (contract, source screen), compile it, load it, and show what its kernels use. Needs no GPU. CUDA
candidates need nvcc, which `pip install -e '.[nvcc]'` installs. Nothing is timed or compared, and no kernel is run.
"""

CHECK_EXAMPLES = """\
examples:
  python run_eval.py check solutions/attention/sdpa/block_per_query.py
  python run_eval.py check my_kernels/ --problems ../KernelBench/KernelBench/level1
  python run_eval.py check 'solutions/**/*.py' --arch 100a --require ok

exit code: 0 if every candidate is ok or unsure (this machine cannot decide); 3 if one fails, or with --require ok if
one is unsure
"""

IMPORT_ABOUT = """\
Turn candidates of others into a folder like any other: problems, solutions, a config that runs them, and import.json,
which says where each file came from, what its source claims about it, and what was left and why. SOURCE is a file or a
folder with KernelBench's generations, tables (JSON, JSON lines), Python files or transcripts of models. Nothing in it
is run.
"""

IMPORT_EXAMPLES = """\
examples:
  python run_eval.py import runs/mine --kernelbench ../KernelBench --out packs/mine
  python run_eval.py import h100.json --out packs/h100 --code-field custom_code --reference-field ref_code \\
      --level-field level_id --problem-field task_id --speedup-field score_default
  python run_eval.py import answers/ --kernelbench ../KernelBench --level 1 --blocks all --out packs/answers

exit code: 0, also if something was left; with --require all 3 then; 2 if nothing could be imported
"""

SERVE_ABOUT = """\
Take candidates over HTTP, evaluate them one after the other on each device, and answer with records, feedback and
rewards. Accepted tasks outlive the service. Needs the extra: pip install 'kernel-assay[serve]'.
"""

SERVE_EXAMPLES = """\
examples:
  ASSAY_TOKEN=$(openssl rand -hex 16) python run_eval.py serve configs/quickstart.yaml
  python run_eval.py serve CONFIG.yaml --problems ../KernelBench/KernelBench/level1 --token-file token --port 8000

exit code: 0, or that of the signal that ended it; 2 if it cannot start. The same command goes on with what was accepted
"""
