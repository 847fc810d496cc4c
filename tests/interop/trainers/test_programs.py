"""The programs of the page on training frameworks run as they stand there."""
import textwrap
from pathlib import Path

import pytest
from support import processes
from support.bridges import ROOT
from support.doctest_sessions import code_blocks
from support.trainer_pipelines import epochs, read_log

# Each process imports a framework, which takes long on a busy machine.
pytestmark = pytest.mark.timeout(600)

PAGE = (ROOT / 'docs' / 'frameworks.rst').read_text('utf-8')
BLOCKS = code_blocks(PAGE)
SUPPORT = Path(__file__).parents[2] / 'support'
ORDER = epochs(2)
# Names of the programs that no page shows: networks that write down the
# batches of a run of two epochs.
NAMES = textwrap.dedent(f"""
    import functools, os, sys
    sys.path.append({str(SUPPORT)!r})
    import lightning, torch, transformers
    from accelerate import Accelerator
    from trainer_pipelines import Log, build as open_stream
    from fuel.interop.torch import Loader

    open_validation_stream = functools.partial(open_stream, 64)
    """)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return what runs a program on some ranks, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(program, ranks):
        path = tmp_path / 'program.py'
        path.write_text(NAMES + program)
        processes.outputs(processes.start_ranks(ranks, str(path)))
    return run


def read(folder, rank, epoch):
    """Return the batches that a rank was trained on in an epoch."""
    return [numbers for number, numbers in read_log(folder, rank)
            if number == epoch]


def test_programs_of_the_page_are_those_below():
    """Another program needs a test of its own."""
    assert 4 == len(BLOCKS) == PAGE.count('code-block::')


LIGHTNING = """
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, number):
        Log('.', self.global_rank).write(self.current_epoch, batch[1])
        return self.layer(batch[0]).mean()

    def validation_step(self, batch, number):
        pass

module = Module()
settings = dict(accelerator='cpu', logger=False, enable_progress_bar=False,
                enable_model_summary=False, enable_checkpointing=False)
"""


def test_program_for_lightning_goes_on_with_the_second_epoch(run, tmp_path):
    """The program starts the other rank itself."""
    run(LIGHTNING + textwrap.dedent("""
        from fuel.interop.lightning import DataModule
        trainer = lightning.Trainer(max_epochs=1, **settings)
        trainer.fit(module, datamodule=DataModule(train=open_stream()))
        trainer.save_checkpoint('last.ckpt')
        """), 1)
    run(LIGHTNING + textwrap.dedent("""
        lightning.Trainer = functools.partial(
            lightning.Trainer, max_epochs=2, **settings)
        """) + BLOCKS[0], 1)
    assert ORDER[0] == read(tmp_path, 0, 0)
    for rank in range(2):
        assert ORDER[1][rank:16:2] == read(tmp_path, rank, 1)


def test_programs_for_accelerate_save_what_was_used(run, tmp_path):
    """The second run goes on after the batch where the first one ended."""
    program = textwrap.dedent("""
        accelerator = Accelerator(cpu=True)
        rank, resumed = accelerator.process_index, os.path.exists('saved')
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        num_epochs = 2
        """) + BLOCKS[1] + BLOCKS[2].replace('        ...\n', textwrap.indent(
            textwrap.dedent("""
                loss = model(features).mean()
                accelerator.backward(loss)
                optimizer.step()
                Log('.', rank).write(progress.epoch, targets)
                step = step + 1 if progress.epoch else 0
                if not resumed and (progress.epoch, step) == (1, 4):
                    sys.exit()
                """), ' ' * 8)).replace(
                    'for progress', 'step = 0\nfor progress')
    assert 'Log(' in program
    run(program, 2)
    run(program, 2)
    for rank in range(2):
        share = [order[rank:16:2] for order in ORDER]
        assert share[0] == read(tmp_path, rank, 0)
        # The batch that was not saved is trained on again.
        assert share[1][:4] + share[1][3:] == read(tmp_path, rank, 1)


def test_program_for_transformers_reads_each_example_once(run, tmp_path):
    """Two ranks use the loader of the manual's page."""
    run(BLOCKS[1].splitlines()[0] + '\n' + BLOCKS[3] + textwrap.dedent("""
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(2, 1)

            def forward(self, features, numbers):
                Log('.', arguments.process_index).write(
                    int(trainer.state.epoch + 1e-6), numbers)
                return {'loss': self.layer(features).mean()}

        arguments = transformers.TrainingArguments(
            'out', num_train_epochs=2, use_cpu=True, report_to=[],
            save_strategy='no', disable_tqdm=True, logging_strategy='no',
            ddp_find_unused_parameters=False)
        trainer = DigitsTrainer(Model(), arguments)
        trainer.train()
        """), 2)
    for epoch in range(2):
        for rank in range(2):
            assert ORDER[epoch][rank:16:2] == read(tmp_path, rank, epoch)
